"""`python -m claude_kernel -f CONNECTION_FILE`: what the kernelspec starts."""

from __future__ import annotations


def main() -> None:
    from ipykernel.kernelapp import IPKernelApp

    from claude_kernel.kernel import ClaudeKernel
    from claude_kernel.settings import ClaudeSettings

    IPKernelApp.classes = [*IPKernelApp.classes, ClaudeSettings]
    IPKernelApp.launch_instance(kernel_class=ClaudeKernel)


if __name__ == "__main__":
    main()
