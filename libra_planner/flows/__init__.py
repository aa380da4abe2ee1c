"""The flow-level checker: links, routes, imbalance, rates, and what imbalance costs."""
