"""The backward pass runs inside the autocast region.

Autocast is for the forward pass: each backward operation already runs in the type that its
forward operation used. For PyTorch's own modules it makes no difference whether the region is
still open: none was measured in the gradients or the operations, with float16 or bfloat16,
hence a note. It does matter for an `autograd.Function` of one's own without `custom_fwd` and
`custom_bwd`, whose backward is then cast in ways that nobody chose. In the proof, a penalty
that its author keeps in float32 gets a gradient that is wrong by 0.3 %, and by 1e-7 once the
backward stands outside.

Bad:

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()  # DDP207
    optimizer.step()
```

Good:

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    loss.backward()
    optimizer.step()
```

Where one `with` enters `no_sync()` as well, dedenting would take the backward out of that too:
FSDP asks in the backward whether to reduce.  Give autocast a `with` of its own, inside.

References:

* `torch.autocast` in the PyTorch documentation
* lucidrains/denoising-diffusion-pytorch, commit 2b742dd
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP207", level="note", fixes="unsafe")
def check(program: Program) -> Findings:
    for backward in program.cast_backwards:
        remedy = "let the region hold the forward pass alone"
        if backward.others_text:
            remedy = (
                "give autocast a `with` of its own around the forward pass, inside "
                f"`{backward.others_text}`"
            )
        elif backward.can_be_dedented:
            remedy = "dedent it"
        yield backward.finding(
            f"`{backward.text}` runs inside the autocast region: torch's own modules do not care, "
            f"an autograd function without `custom_bwd` computes in the wrong type; {remedy}",
            related=backward.chain,
            fix=backward.fix,
        )
