"""Start a server and say where it is, on a terminal."""

from discreet.picture import visible
from discreet.serve.run import prepare, run
from discreet.serve.settings import Settings


def start(settings: Settings, *, open_page: bool = False) -> None:
    """Serve until interrupted; say where, and the owner's token if it is new."""
    made = prepare(settings)

    def ready(found: Settings) -> None:
        print(f"Serving {', '.join(map(visible, found.schemas))} at {found.address}")
        if made is not None:
            print(f"The owner's token, shown only now:\n\n  {made}\n")
            print(f"Sign in with it: {found.address}/sign-in#{made}\n")
        print("Stop with Ctrl-C. What it does is logged on the standard error.", flush=True)
        if open_page:
            import webbrowser

            webbrowser.open(f"{found.address}/sign-in#{made}")

    run(settings, ready=ready)
