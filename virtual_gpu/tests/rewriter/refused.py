"""Sources that the rewriter rejects: the table of rewriter_test.py."""

REFUSED = {  # message: {name: source, wrong in line 3}
    "__device__ variable 'x' in a function, a class or a template: not supported on virtual GPUs "
    "(declare it in a namespace)": {
        "device_variable_template": "template <class T> __device__ T x = T(1);",
        "device_member": "struct A { static __device__ int x; };",
        "device_variable_in_function": "void f() { static __device__ int x; }"},
    "inline PTX is not supported on virtual GPUs": {
        "asm": 'void f() { asm("nop"); }',
        "asm_volatile": 'void f() { asm volatile("nop"); }',
        "gnu_asm": 'void f() { __asm__ __volatile__("nop"); }',
        "old_asm": 'void f() { __asm("nop"); }'},
    "kernel 'k' uses exceptions ('throw'): not supported in device code": {
        "throw_in_kernel": "__global__ void k(int n) { if (n) { throw 1; } }"},
    "kernel 'k' uses exceptions ('try')": {
        "try_in_kernel": "template <class T> __global__ void k(T n) { for (;;) try { f(n); } catch (...) { } }",
        "kernel_that_is_a_try": "__global__ void k(int n) try { f(n); } catch (...) { }"},
    "kernel 'k' uses exceptions": {
        "throw_in_lambda_of_kernel": "__global__ void k() { auto f = [] { throw 1; }; f(); }"},
    "__device__ function 'f' uses exceptions ('throw')": {
        "throw_in_device_function": "struct A { __device__ int f(int n) const noexcept(false) { throw n; } };",
        "throw_in_inline_device_function": "__noinline__ __device__ void f() { throw; }"},
    "a __device__ lambda uses exceptions ('throw')": {
        "throw_in_device_lambda": "void f() { g([=] __device__ (int i) { throw i; }); }"},
    "the launch of 'k' needs grid, block": {
        "launch_of_one": "void f() { k<<<1>>>(x); }",
        "launch_of_none": "void f() { k<<<>>>(x); }",
        "launch_of_five": "void f() { k<<<1, 2, 3, 4, 5>>>(x); }",
        "launch_of_one_template": "void f() { k<<<g<1, 2>()>>>(x); }",
        "launch_with_a_hole": "void f() { k<<<1, >>>(x); }",
        "launch_with_a_hole_first": "void f() { k<<<, 1>>>(x); }"},
    "the launch of 'k' has no '>>>'": {
        "launch_without_end_before_a_comma": "void f() { k<<<1, 1(x), j<<<1, 1>>>(x); }",
        "launch_without_end_before_another": "void f() { k<<<1, 1(x); j<<<1, 1>>>(x); }",
        "launch_with_end_apart": "void f() { k<<<1, 1> >>(x); }"},
    "the launch of 'a::k<int>' has no '>>>'": {"launch_without_end": "void f() { a::k<int><<<1, 1(x); }"},
    "the launch of 'k' has no arguments in parentheses": {
        "launch_without_arguments": "void f() { k<<<1, 1>>>; }"},
    "a launch needs a kernel in front of '<<<'": {
        "launch_without_kernel": "void f() { x = <<<1, 1>>>(x); }",
        "launch_after_return": "void f() { return <<<1, 1>>>(x); }",
        "launch_of_called_lambda": "void f() { [] { return k; }()<<<1, 1>>>(x); }"},
    "kernel 'k' must return void": {
        "kernel_not_void": "__global__ int k() { }",
        "specialised_kernel_not_void": "template <> __global__ int k<int>() { }"},
    "__global__ stands before something that is not a function": {"kernel_variable": "__global__ int k;"},
    "kernel 'k' is a member of a class": {
        "kernel_member": "struct A { static __global__ void k() { } };",
        "kernel_member_of_template": "template <class T> class A : B<T> { public: __global__ void k(); };",
        "kernel_member_behind_bases": "template <class T> struct A : B<f(1)>, C { __global__ void k(); };",
        "kernel_member_of_union": "union A { __global__ void k(); };",
        "kernel_member_of_local_class": "void f() { struct A { __global__ void k(); }; }"},
    "kernel 'k' is a member of a class or defined in a friend": {
        "kernel_defined_as_friend": "class A { friend __global__ void k(A) { } };"},
    "__shared__ variable 'a' has an initialiser": {
        "shared_initialiser": "void f() { __shared__ int a[2] = {1, 2}; }",
        "shared_initialiser_in_braces": "void f() { __shared__ int a{1}; }",
        "shared_array_initialiser": "void f() { __shared__ int a[2]{1}; }",
        "shared_initialiser_in_parentheses": "void f() { __shared__ int a(1); }"},
    "__shared__ variable 'b' has an initialiser": {
        "shared_second_initialiser": "void f() { __shared__ int a, b = 1; }"},
    "__shared__ variable 'a' stands outside of a function": {
        "shared_in_namespace": "namespace n { __shared__ int a; }",
        "shared_in_linkage_block": 'extern "C" { __shared__ int a; }',
        "shared_outside": "__shared__ int a;",
        "shared_member": "struct A : B { __shared__ int a; };",
        "shared_member_of_local_class": "void f() { struct A { __shared__ int a; }; }"},
    "extern __shared__ variable 'a' must be declared alone": {
        "shared_dynamic_with_size": "void f() { extern __shared__ int a[4]; }",
        "shared_dynamic_pointer": "void f() { extern __shared__ int* a; }",
        "shared_dynamic_twice": "void f() { extern __shared__ int a[], b[]; }"},
    "the declaration of __shared__ variable 'a' does not end with ';'": {
        "shared_without_end": "void f() { __shared__ int a }"},
    "cannot read this __shared__ declaration": {"shared_without_name": "void f() { __shared__ int +; }"},
}
