# calmix with ONNX Runtime, the libtorch it was built with, and torchrun. docs/guides/launching.md has the commands that build it.

FROM rust:1.95-slim-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ make python3-venv \
    && rm -rf /var/lib/apt/lists/*
# For a CPU, name PyTorch's own index of packages for CPUs: the one there has a twentieth of the size.
ARG TORCH_INDEX=
RUN python3 -m venv /opt/torch \
    && /opt/torch/bin/pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch==2.13.0
RUN /opt/torch/bin/pip install --no-cache-dir onnxruntime==1.31.1
# Several GPUs need `nccl`, and that needs headers that PyTorch's package does not bring.
ARG FEATURES=raster
RUN case ",$FEATURES," in *,nccl,*) \
      /opt/torch/bin/pip install --no-cache-dir nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85 ;; \
    esac
WORKDIR /calmix
COPY . .
# There is no git in here to say it.
ARG COMMIT=unknown
ARG PROFILE=dist
ENV PATH=/opt/torch/bin:$PATH VIRTUAL_ENV=/opt/torch LIBTORCH_USE_PYTORCH=1 CALMIX_COMMIT=$COMMIT
RUN cargo build --locked --profile "$PROFILE" --package calmix --package calmix-torch --features "$FEATURES" \
    && find target -maxdepth 2 \( -name calmix -o -name calmix-torch \) -type f -exec install -m 755 {} /usr/local/bin/ \;

FROM debian:bookworm-slim
# torchrun is a program in Python; the environment below takes the interpreter of the system.
RUN apt-get update \
    && apt-get install -y --no-install-recommends libstdc++6 python3 \
    && rm -rf /var/lib/apt/lists/*
# At the same path: calmix-torch looks for libtorch where it was when it was linked.
COPY --from=build /opt/torch /opt/torch
COPY --from=build /usr/local/bin/calmix /usr/local/bin/calmix-torch /usr/local/bin/
ENV PATH=/opt/torch/bin:$PATH \
    ORT_DYLIB_PATH=/opt/torch/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.31.1 \
    ORT_DISABLE_TELEMETRY=1
RUN useradd --uid 1000 --create-home calmix
USER 1000:1000
WORKDIR /home/calmix
CMD ["calmix", "--help"]
