"""Callbacks of a Trainer: they run in every process and after every step."""

import os

import torch
import torch.distributed as dist
from datasets import load_from_disk
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)


class GradientNorm(TrainerCallback):
    """The norm of the gradients, printed every hundred steps."""

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        norms = [p.grad.norm() for p in model.parameters() if p.grad is not None]
        norm = torch.linalg.vector_norm(torch.stack(norms)).item()  # DDP101
        if state.is_world_process_zero and state.global_step % 100 == 0:
            print(f"step {state.global_step}: gradient norm {norm:.3f}")


class ExportHead(TrainerCallback):
    """The output layer in a file of its own, beside each checkpoint."""

    def on_save(self, args, state, control, model=None, **kwargs):
        path = os.path.join(args.output_dir, f"head-{state.global_step}.pt")
        torch.save(model.get_output_embeddings().state_dict(), path)  # DDP401
        if state.is_world_process_zero and dist.is_initialized():
            dist.barrier()  # DDP501
            print(f"wrote {path}")

    def on_step_end(self, args, state, control, **kwargs):
        torch.cuda.empty_cache()  # DDP104


def main():
    name = "gpt2"
    tokenizer = AutoTokenizer.from_pretrained(name)
    tokenizer.pad_token = tokenizer.eos_token
    arguments = TrainingArguments(
        output_dir="stories",
        per_device_train_batch_size=8,
        num_train_epochs=1,
        bf16=True,
        dataloader_num_workers=4,
        save_steps=500,
    )
    trainer = Trainer(
        AutoModelForCausalLM.from_pretrained(name),
        arguments,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
        train_dataset=load_from_disk("stories-tokenized"),
        callbacks=[GradientNorm(), ExportHead()],
    )
    trainer.train()
    trainer.save_model()


if __name__ == "__main__":
    main()
