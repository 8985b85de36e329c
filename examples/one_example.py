"""Where one example of weight h sends the prediction: the table of the README, as Markdown."""

from steelyard import step


def land(update: str, h: float) -> float:
    """The prediction after one step from 0 towards the label 3, at rate 1."""
    return -h * step(0.0, 3.0, h, loss="squared", update=update)


def many_small_steps(h: float, pieces: int = 100_000) -> float:
    """Plain gradient descent on the example in many pieces of weight h/pieces."""
    p = 0.0
    for _ in range(pieces):
        p -= (h / pieces) * (p - 3.0)
    return p


def main() -> None:
    """Print the table."""
    print("| weight h | linearized (SGD) | aProx | **IWA** | proximal | seen h times |")
    print("|---:|---:|---:|---:|---:|---:|")
    for h in (0.5, 1, 2, 10, 1000):
        plain, truncated, iwa, proximal = (land(update, h) for update in ("linearized", "aprox", "iwa", "proximal"))
        print(f"| {h} | {plain:.2f} | {truncated:.2f} | **{iwa:.2f}** | {proximal:.2f} | {many_small_steps(h):.2f} |")


if __name__ == "__main__":
    main()
