"""Fine-tune a classifier with Accelerate, with what Accelerate does not do for its user."""

import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from datasets import load_from_disk
from torch.utils.data import DataLoader
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    get_linear_schedule_with_warmup,
)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="bert-base-cased")
    parser.add_argument("--data", default="reviews")
    parser.add_argument("--output", default="finetuned")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=8)
    set_seed(42)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    splits = load_from_disk(args.data)
    collate = DataCollatorWithPadding(tokenizer)
    train_loader = DataLoader(
        splits["train"], batch_size=4, shuffle=True, collate_fn=collate, num_workers=2
    )
    eval_loader = DataLoader(splits["test"], batch_size=16, collate_fn=collate, num_workers=2)
    model = AutoModelForSequenceClassification.from_pretrained(args.model, num_labels=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    scheduler = get_linear_schedule_with_warmup(optimizer, 100, args.epochs * len(train_loader))
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, scheduler
    )

    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for batch in train_loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                total += loss.item()  # DDP101
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)  # DDP202
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        accelerator.print(f"epoch {epoch}: loss {total / len(train_loader):.3f}")

        model.eval()
        right = seen = 0
        for batch in eval_loader:
            with torch.no_grad():
                predictions = model(**batch).logits.argmax(-1)
            if accelerator.is_main_process:
                predictions, labels = accelerator.gather_for_metrics(  # DDP501
                    (predictions, batch["labels"])
                )
                right += (predictions == labels).sum().item()
                seen += labels.numel()
        accelerator.print(f"epoch {epoch}: accuracy {right / max(seen, 1):.3f}")

    unwrapped = accelerator.unwrap_model(model)
    torch.save(unwrapped.state_dict(), f"{args.output}/weights.pt")  # DDP401
    accelerator.end_training()


if __name__ == "__main__":
    main()
