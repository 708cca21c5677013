class Head(nn.Module):
    """Features to logits: centred, of unit length, on the principal directions if there are fewer of them."""

    def __init__(self, folder):
        super().__init__()
        for file in ["projection.safetensors", "model.safetensors"]:
            for name, tensor in load_file(folder / file).items():
                self.register_buffer(name.replace(".", "_"), tensor)

    def forward(self, x):
        x = x - self.features_mean
        # By the largest number first: the squares of a long vector are infinite.
        x = x / x.abs().amax(dim=1, keepdim=True).clamp_min(1e-12)
        x = x / x.norm(dim=1, keepdim=True).clamp_min(1)
        if hasattr(self, "features_rotation"):
            x = x @ self.features_rotation.T
        if hasattr(self, "hidden_weight"):
            x = F.relu(F.linear(x, self.hidden_weight, self.hidden_bias))
        return F.linear(x, self.classifier_weight, self.classifier_bias)
