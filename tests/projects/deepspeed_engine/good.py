"""ZeRO training: the engine scales, clips, accumulates, clears and shards the checkpoint.

deepspeed --num_gpus 8 good.py
"""

import argparse

import deepspeed
import torch
import torch.distributed as dist
from torch.utils.data import TensorDataset
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
    engine, _, loader, _ = deepspeed.initialize(
        args=args,
        model=model,
        model_parameters=model.parameters(),
        training_data=TensorDataset(tokens),
        config=CONFIG,
    )
    for epoch in range(2):
        loader.data_sampler.set_epoch(epoch)
        for step, (batch,) in enumerate(loader):
            batch = batch.to(engine.device)
            loss = engine(input_ids=batch, labels=batch).loss
            engine.backward(loss)
            engine.step()
            if step % 100 == 0 and dist.get_rank() == 0:
                print(f"epoch {epoch} step {step}: {loss.item():.3f}")
        engine.save_checkpoint(args.output, tag=f"epoch-{epoch}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
