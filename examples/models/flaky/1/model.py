"""Answers with what it was sent, but every hundredth request fails."""

import triton_python_backend_utils as pb_utils

EVERY = 100


class TritonPythonModel:
    def initialize(self, args):
        self.requests = 0

    def execute(self, requests):
        responses = []
        for request in requests:
            self.requests += 1
            if self.requests % EVERY == 0:
                error = pb_utils.TritonError(f"request {self.requests} fails on purpose")
                responses.append(pb_utils.InferenceResponse(output_tensors=[], error=error))
                continue
            value = pb_utils.get_input_tensor_by_name(request, "input").as_numpy()
            responses.append(
                pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("output", value)])
            )
        return responses
