"""Files beside a plan: fabrics, flows, collectives, parts."""
