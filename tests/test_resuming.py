"""What the fixes of DDP212 make of programs: the scale is saved, and loaded again."""

from __future__ import annotations

from tests.test_mending import check

RESUMING = """
    import torch
    from torch.utils.data import DataLoader


    def main(path="last.pt"):
        net = torch.nn.Linear(2, 2).cuda()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        {early}first = 0

        def resume():
            nonlocal first
            old = torch.load(path, map_location="cpu")
            first = old['epoch']
            net.load_state_dict(old['net'])
            opt.load_state_dict({state}){load}

        {late}
        for epoch in range(first, 5):
            for images in DataLoader([]):
                opt.zero_grad()
                with torch.autocast("cuda"):
                    loss = net(images.cuda()).sum()
                scaler.scale(loss).backward()
                scaler.step(opt)
                scaler.update()
            state = {{'epoch': epoch, 'net': net.state_dict(), 'opt': opt.state_dict(){save}}}
            torch.save(state, path)


    main()
"""
SCALER = 'scaler = torch.amp.GradScaler("cuda")\n        '


def resuming(
    early: str = SCALER, late: str = "resume()", state: str = "old['opt']", *, mended: bool = False
) -> str:
    load, save = "", ""
    if mended:
        load = """
            if 'scaler' in old:
                scaler.load_state_dict(old['scaler'])"""
        save = ", 'scaler': scaler.state_dict()"
    return RESUMING.format(early=early, late=late, state=state, load=load, save=save)


def test_what_is_saved_is_loaded_also_in_a_function_inside() -> None:
    check("DDP212", resuming(), resuming(mended=True))


def test_nothing_is_saved_that_cannot_be_loaded() -> None:
    check("DDP212", resuming(state="old.get('opt')"), None)
    twice = "resume()\n        opt.load_state_dict(torch.load('best.pt')['opt'])"
    check("DDP212", resuming(late=twice), None)


def test_a_scaler_that_is_made_after_the_load_is_not_loaded() -> None:
    check("DDP212", resuming(early="", late=f"resume()\n        {SCALER}"), None)


def test_a_scaler_that_is_made_on_some_ways_only_is_not_loaded() -> None:
    check("DDP212", resuming(early=f"if path:\n            {SCALER}"), None)


def test_a_program_that_resumes_nothing_saves_it() -> None:
    text = resuming(late="").replace("opt.load_state_dict", "print")
    saved = resuming(late="", mended=True).replace("opt.load_state_dict", "print")
    lines = [line for line in saved.splitlines(keepends=True) if "'scaler' in" not in line]
    after = "".join(line for line in lines if "scaler.load" not in line)
    check("DDP212", text, after)
