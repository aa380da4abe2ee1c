"""What is asked of clusters without a plan: files of cases, systems, networks, traces, jobs."""
