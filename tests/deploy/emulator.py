"""Starts MiniStack with what it lacks.

A reference to a secret is its name there; on AWS, and here, it is its ARN, which is what policies name. It refuses an alarm on more than one metric: here it keeps such an alarm as one on a metric of the alarm's own name, so
that a template with it can be deployed. It judges alarms without regard to dimensions: here it leaves that to
alarm-watch.ts. It measures no queue, and of functions only what is invoked by hand: here it counts the messages that are
received, those that are received for the first time as sent, and the errors of every invocation.
"""

from ministack.app import main
from ministack.services import apigateway, cloudwatch, lambda_svc, sqs
from ministack.services.cloudformation import engine, provisioners

make_record = provisioners._cw_metric_alarm_record
collect = sqs._collect_msgs
execute = lambda_svc._execute_function_dispatch
resolve = engine._resolve_refs


def make_record_of_any(name, props):
    if props.get("Metrics"):
        others = {key: value for key, value in props.items() if key != "Metrics"}
        props = {**others, "Namespace": "MetricMath", "MetricName": name}
    return make_record(name, props)


def count(namespace, metric, dimension, value):
    cloudwatch.record_metric(namespace, metric, 1, "Count", {dimension: value})


def collect_and_count(queue, *rest):
    messages = collect(queue, *rest)
    name = queue["attributes"]["QueueArn"].rsplit(":", 1)[-1]
    for message in messages:
        count("AWS/SQS", "NumberOfMessagesReceived", "QueueName", name)
        # A message that a queue has given up is moved, not sent.
        if message["receive_count"] == 1 and "DeadLetterQueueSourceArn" not in message["sys"]:
            count("AWS/SQS", "NumberOfMessagesSent", "QueueName", name)
    return messages


def execute_and_count(func, config, *rest):
    result = execute(func, config, *rest)
    if result.get("error"):
        count("AWS/Lambda", "Errors", "FunctionName", config["FunctionName"])
    return result


def resolve_secrets_too(value, resources, *rest):
    resource = resources.get(value["Ref"], {}) if isinstance(value, dict) and "Ref" in value else {}
    if resource.get("ResourceType") == "AWS::SecretsManager::Secret":
        return resource["Attributes"]["Arn"]
    return resolve(value, resources, *rest)


# What a function is told of the address's host: one that ends in a number is no host of a URL.
apigateway._HOST = "localhost"
engine._resolve_refs = resolve_secrets_too
provisioners._cw_metric_alarm_record = make_record_of_any
cloudwatch._evaluate_alarm = lambda alarm: None
sqs._collect_msgs = collect_and_count
lambda_svc._execute_function_dispatch = execute_and_count

main()
