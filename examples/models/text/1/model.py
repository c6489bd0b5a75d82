"""Streams a request's words back, one token a response."""

import json
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]

        def text(key):
            return parameters[key]["string_value"]

        self.tokens = int(text("tokens"))
        self.first = float(text("first_ms")) / 1000
        self.between = float(text("token_ms")) / 1000
        self.flag_on_last = text("final") == "last"

    def stream(self, request):
        sender = request.get_response_sender()
        prompt = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy().reshape(-1)[0]
        words = prompt.decode("utf-8", "replace").split() or ["token"]
        limit = pb_utils.get_input_tensor_by_name(request, "max_tokens")
        count = self.tokens if limit is None else max(0, int(limit.as_numpy().reshape(-1)[0]))
        if count == 0:
            time.sleep(self.first)
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            return
        for index in range(count):
            time.sleep(self.between if index else self.first)
            token = np.array([words[index % len(words)].encode() + b" "], dtype=np.object_)
            response = pb_utils.InferenceResponse(
                output_tensors=[pb_utils.Tensor("text_output", token)]
            )
            last = self.flag_on_last and index + 1 == count
            sender.send(
                response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL if last else 0
            )
        if not self.flag_on_last:
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def execute(self, requests):
        for request in requests:
            self.stream(request)
        return None
