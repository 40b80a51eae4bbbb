"""Callbacks of a Trainer that know which process they are in and which step it is."""

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
    """The norm of the gradients, every hundred steps."""

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        if state.global_step % 100 != 0:
            return
        norms = [p.grad.norm() for p in model.parameters() if p.grad is not None]
        norm = torch.linalg.vector_norm(torch.stack(norms)).item()
        if state.is_world_process_zero:
            print(f"step {state.global_step}: gradient norm {norm:.3f}")


class ExportHead(TrainerCallback):
    """The output layer in a file of its own, beside each checkpoint."""

    def on_save(self, args, state, control, model=None, **kwargs):
        if state.is_world_process_zero:
            path = os.path.join(args.output_dir, f"head-{state.global_step}.pt")
            torch.save(model.get_output_embeddings().state_dict(), path)
        if dist.is_initialized():
            dist.barrier()


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
