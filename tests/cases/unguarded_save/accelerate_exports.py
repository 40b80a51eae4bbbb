"""Exports of Hugging Face models: told who writes, or left to a framework that shards."""

import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM, AutoTokenizer


def main():
    accelerator = Accelerator()
    tokenizer = AutoTokenizer.from_pretrained("gpt2")
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model, optimizer = accelerator.prepare(model, optimizer)
    for _ in range(1000):
        tokens = torch.randint(50_257, (4, 128), device=accelerator.device)
        loss = model(tokens, labels=tokens).loss
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    accelerator.unwrap_model(model).save_pretrained(
        "told",
        is_main_process=accelerator.is_main_process,
        save_function=accelerator.save,
    )
    model.save_pretrained("sharded")
    tokenizer.save_pretrained("tokens")  # DDP401


if __name__ == "__main__":
    main()
