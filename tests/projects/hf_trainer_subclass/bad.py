"""A Trainer whose own loss waits for the device twice a step.

torchrun --nproc-per-node 8 bad.py
"""

import torch
import torch.nn.functional as F
from datasets import load_from_disk
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)


class DistillationTrainer(Trainer):
    def __init__(self, *args, teacher, temperature=2.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.teacher = teacher.to(self.args.device).eval()
        self.temperature = temperature
        self.soft_losses = []

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        with torch.no_grad():
            teacher_logits = self.teacher(**inputs).logits
        soft = F.kl_div(
            F.log_softmax(outputs.logits / self.temperature, dim=-1),
            F.softmax(teacher_logits / self.temperature, dim=-1),
            reduction="batchmean",
        )
        self.soft_losses.append(soft.item())  # DDP101
        if torch.isnan(soft):  # DDP102
            soft = torch.zeros_like(soft)
        loss = outputs.loss + soft * self.temperature**2
        return (loss, outputs) if return_outputs else loss

    def log(self, logs, *args, **kwargs):
        if self.soft_losses:
            logs["soft_loss"] = sum(self.soft_losses) / len(self.soft_losses)
            self.soft_losses.clear()
        super().log(logs, *args, **kwargs)


def main():
    tokenizer = AutoTokenizer.from_pretrained("distilbert-base-cased")
    splits = load_from_disk("reviews")
    arguments = TrainingArguments(
        output_dir="distilled",
        per_device_train_batch_size=16,
        gradient_accumulation_steps=4,
        num_train_epochs=3,
        fp16=True,
        max_grad_norm=1.0,
        dataloader_num_workers=4,
        logging_steps=50,
        ddp_find_unused_parameters=False,
    )
    trainer = DistillationTrainer(
        AutoModelForSequenceClassification.from_pretrained("distilbert-base-cased"),
        arguments,
        teacher=AutoModelForSequenceClassification.from_pretrained("teacher"),
        data_collator=DataCollatorWithPadding(tokenizer),
        train_dataset=splits["train"],
        eval_dataset=splits["test"],
    )
    trainer.train()
    trainer.save_model("distilled/final")


if __name__ == "__main__":
    main()
