"""The part that runs in Spark's workers: a task's input, its stage, its state, its sink."""
