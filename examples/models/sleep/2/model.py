"""Takes a fixed time and answers with what it was sent."""

import time

import triton_python_backend_utils as pb_utils

SECONDS = {"1": 0.020, "2": 0.060, "3": 0.026}


class TritonPythonModel:
    def initialize(self, args):
        self.seconds = SECONDS[args["model_version"]]

    def execute(self, requests):
        responses = []
        for request in requests:
            time.sleep(self.seconds)
            value = pb_utils.get_input_tensor_by_name(request, "input").as_numpy()
            responses.append(
                pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("output", value)])
            )
        return responses
