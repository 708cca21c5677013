class Head(nn.Module):
    """Features to logits: centred, of unit length, on the principal directions if there are fewer of them."""

    def __init__(self, folder):
        super().__init__()
        for file in ["projection.safetensors", "model.safetensors"]:
            for name, tensor in load_file(folder / file).items():
                self.register_buffer(name.replace(".", "_"), tensor)

    @staticmethod
    def normalised(x):
        # By the largest number first: the squares of a long vector are infinite.
        x = x / x.abs().amax(dim=1, keepdim=True).clamp_min(1e-12)
        return x / x.norm(dim=1, keepdim=True).clamp_min(1)

    def forward(self, x):
        x = x - self.features_mean
        if hasattr(self, "features_sets"):
            sets = self.features_sets.tolist()
            x = torch.cat([self.normalised(part) for part in x.split(sets, dim=1)], dim=1) / len(sets) ** 0.5
        else:
            x = self.normalised(x)
        if hasattr(self, "features_rotation"):
            x = x @ self.features_rotation.T
        if hasattr(self, "hidden_weight"):
            x = F.relu(F.linear(x, self.hidden_weight, self.hidden_bias))
        return F.linear(x, self.classifier_weight, self.classifier_bias)
