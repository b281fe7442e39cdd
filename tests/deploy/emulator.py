"""Starts MiniStack with one thing that it lacks: it refuses an alarm on more than one metric.

Here it keeps such an alarm as one on a metric of the alarm's own name, which nobody writes, so that a template with
it can be deployed.
"""

from ministack.app import main
from ministack.services.cloudformation import provisioners

make_record = provisioners._cw_metric_alarm_record


def make_record_of_any(name, props):
    if props.get("Metrics"):
        others = {key: value for key, value in props.items() if key != "Metrics"}
        props = {**others, "Namespace": "MetricMath", "MetricName": name}
    return make_record(name, props)


provisioners._cw_metric_alarm_record = make_record_of_any

main()
