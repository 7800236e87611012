"""An article's figures next to our results, for its companion page: docs/articles/articles.json maps each figure to a result in
docs/results. A figure without a result is marked as not measured; nothing is extrapolated from other sizes."""
import json
import pathlib
from typing import Any, Dict, List, Optional, Tuple

from tools.pages.excerpts import PageError
from tools.results.ladder import stamp, table
from tools.results.results import field_text, newest

UP = "../.."  # the path from a companion page to the repository's root
_FACTORS = {"us": 1000.0}  # the suffix of fields in milliseconds


def articles(root: pathlib.Path) -> List[Dict[str, Any]]:
    """All articles: page, headings and figures of each."""
    found: List[Dict[str, Any]] = json.loads((root / "docs" / "articles" / "articles.json").read_text(encoding="utf-8"))
    return found


def _run_and_result(figure: Dict[str, Any], reports: List[Dict[str, Any]]) -> Optional[Tuple[Dict[str, Any], Dict[str, Any]]]:
    wanted = dict(figure["run"])
    chapter = wanted.pop("chapter")
    for run in newest(run for report in reports for run in report["runs"] if run["chapter"] == chapter and not run["modelled"]):
        if all(run["options"].get(name) == value for name, value in wanted.items()):
            for result in run["results"]:
                if result.get("variant") == figure["variant"] and all(field in result for field in figure["fields"]):
                    return run, result
    return None


def figures_table(name: str, root: pathlib.Path, reports: List[Dict[str, Any]]) -> str:
    """The table of one article, and the machine on which its right half was measured."""
    found = [article for article in articles(root) if article["page"] == f"{name}.md"]
    if not found:
        raise PageError(f"articles.json has no article '{name}'")
    rows, stamps = [], []
    for figure in found[0]["figures"]:
        ours = _run_and_result(figure, reports)
        chapter = figure["run"]["chapter"]
        number = f"[{chapter[:2]}]({UP}/chapters/{chapter.partition('/')[0]}/README.md#measured)"
        if ours is None:
            rows.append([figure["what"], figure["article"], "not measured", number])
            continue
        run, result = ours
        said = ", ".join(f"{field_text(result[field] * _FACTORS.get(unit, 1.0))} {unit}" for field, unit in figure["fields"].items())
        gpu = run["hardware"]["gpu"].removeprefix("NVIDIA ").split()[0]
        rows.append([figure["what"], figure["article"], f"`{figure['variant']}`: {said}, {gpu}", number])
        stamps.append(stamp(run))
    if not rows:
        return "The article gives no times.\n"
    measured = f"\nOurs: {'; '.join(dict.fromkeys(stamps))}.\n" if stamps else ""
    return table(["what", "the article", "here", "chapter"], rows) + measured
