from firstpage.core.kernels.compiler.decorators import MAX_INTERPRETED as MAX_INTERPRETED
