"""From text to a plan, and the verdict over two plans: syntax, binder, catalog, plan, upgrade."""
