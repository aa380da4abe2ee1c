"""The flow-level checker: links, routes, rates and imbalance."""
