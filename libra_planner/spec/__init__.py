"""The boundary: plan, workload and price-book files into the core's frozen types."""
