"""ZeRO training with a loader of one's own, and a checkpoint that one process wants to write.

deepspeed --num_gpus 8 bad.py
"""

import argparse

import deepspeed
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from transformers import AutoModelForCausalLM

CONFIG = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 8,
    "gradient_clipping": 1.0,
    "fp16": {"enabled": True},
    "zero_optimization": {"stage": 3},
    "optimizer": {"type": "AdamW", "params": {"lr": 2e-5}},
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)
    parser.add_argument("--output", default="checkpoints")
    parser = deepspeed.add_config_arguments(parser)
    args = parser.parse_args()

    torch.cuda.set_device(args.local_rank)
    deepspeed.init_distributed()
    model = AutoModelForCausalLM.from_pretrained("EleutherAI/pythia-1.4b")
    tokens = torch.load("tokens.pt", map_location="cpu")
    dataset = TensorDataset(tokens)
    loader = DataLoader(dataset, batch_size=4, shuffle=True, num_workers=2)  # DDP304
    engine, _, _, _ = deepspeed.initialize(
        args=args,
        model=model,
        model_parameters=model.parameters(),
        config=CONFIG,
    )
    losses = []
    for epoch in range(2):
        for (batch,) in loader:
            batch = batch.to(engine.device)
            loss = engine(input_ids=batch, labels=batch).loss
            engine.backward(loss)
            engine.step()
            losses.append(loss.item())  # DDP101
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {sum(losses) / len(losses):.3f}")
            engine.save_checkpoint(args.output, tag=f"epoch-{epoch}")  # DDP407
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
