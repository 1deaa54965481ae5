"""`python -m claude_kernel -f CONNECTION_FILE`: what the kernelspec starts."""

from __future__ import annotations

import gc


def main() -> None:
    gc.disable()  # modules are no garbage, and looking for some among them is a tenth of the start

    from ipykernel.kernelapp import IPKernelApp

    from claude_kernel.kernel import ClaudeKernel
    from claude_kernel.settings import ClaudeSettings

    IPKernelApp.classes = [*IPKernelApp.classes, ClaudeSettings]
    app = IPKernelApp.instance(kernel_class=ClaudeKernel)
    app.initialize()
    gc.freeze()
    gc.enable()
    app.start()


if __name__ == "__main__":
    main()
