// The program whose precompiled gtest every test reuses (cmake/WarmpathTargets.cmake). It does nothing.
int main() {}
