"""The owner of the buckets: gives them other rules and topics other endpoints, while writes go on.

Each edit is tried until it is acknowledged. From the first attempt to the acknowledgement it is in flight:
the check then takes the old and the new rules for right.
"""

import threading
import time
from collections.abc import Callable, Iterable

from botocore.exceptions import BotoCoreError, ClientError

from chaos.history import Edit, History
from chaos.plan import MoveStep, RulesStep
from chaos.world import World

AGAIN_SECONDS = 0.2


class Owner:
    """Does the edits of the schedule, one after the other."""

    def __init__(self, world: World, history: History, stop: threading.Event) -> None:
        self._world = world
        self._history = history
        self._stop = stop
        self._s3, self._sns = world.client("s3"), world.client("sns")
        self.edits = 0

    def run(self, steps: Iterable[RulesStep | MoveStep], began: float) -> None:
        """Do each at its time, or as soon as those before it are done."""
        for step in steps:
            if self._stop.wait(max(0.0, began + step.at_seconds - time.time())):
                return
            self._do(step)
            self.edits += 1

    def _do(self, step: RulesStep | MoveStep) -> None:
        if isinstance(step, MoveStep):
            url = self._world.http.url(step.topic, step.place)
            arn = self._world.arns[step.topic]
            self._until_acknowledged(
                lambda: self._sns.set_topic_attributes(
                    TopicArn=arn, AttributeName="push-endpoint", AttributeValue=url
                )
            )
            self._world.http.place_of[step.topic] = step.place
            return
        first_sent = time.time()
        edit = Edit(step.bucket, step.rules, first_sent)
        if self._until_acknowledged(lambda: self._world.store_rules(self._s3, step.bucket, step.rules)):
            edit = Edit(step.bucket, step.rules, first_sent, time.time())
        self._history.edits.append(edit)

    def _until_acknowledged(self, send: Callable[[], object]) -> bool:
        """False when the run ends before; an edit that is refused is a mistake of this program."""
        while True:
            try:
                send()
            except ClientError as error:
                if error.response["ResponseMetadata"]["HTTPStatusCode"] < 500:
                    raise
            except BotoCoreError:
                pass  # no answer: it is tried again, as after a 5xx
            else:
                return True
            if self._stop.wait(AGAIN_SECONDS):
                return False
