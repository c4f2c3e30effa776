"""
Topics in documents with spam
=============================

The docstrings of Python's standard library are a corpus that every installation has. We add spam
to it: a tenth of the documents are long lists of random words. Word counts are sparse, and the
Kullback-Leibler divergence is the loss for counts.
"""

# %%
# The documents are the docstrings of modules, classes and functions.

import importlib
import inspect
import warnings

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import CountVectorizer

from robustnmf import RobustNMF
from robustnmf.exceptions import OutlierWarning

MODULES = """
    argparse asyncio calendar collections csv datetime decimal difflib email.message fractions
    http.client http.server imaplib ipaddress logging logging.handlers mailbox multiprocessing
    optparse os pathlib random shutil smtplib socket socketserver sqlite3 ssl statistics string
    subprocess tarfile tempfile textwrap threading turtle unittest unittest.mock urllib.parse
    urllib.request xml.dom.minidom xml.etree.ElementTree zipfile
"""
texts = set()
for name in MODULES.split():
    module = importlib.import_module(name)
    for _, item in inspect.getmembers(module):
        members = [item, *(vars(item).values() if inspect.isclass(item) else ())]
        texts |= {m.__doc__ for m in members if isinstance(getattr(m, "__doc__", None), str)}
texts = sorted(text for text in texts if len(text.split()) >= 20)

vectorizer = CountVectorizer(
    stop_words="english", min_df=8, max_df=0.2, token_pattern=r"\b[a-z]{4,}\b"
)
counts = vectorizer.fit_transform(texts).astype(float)
words = vectorizer.get_feature_names_out()
print(f"{counts.shape[0]} documents, {counts.shape[1]} words")

# %%
# Each spam document repeats forty random words many times.

rng = np.random.default_rng(0)
spam = np.zeros((counts.shape[0] // 9, counts.shape[1]))
for row in spam:
    row[rng.choice(len(words), size=40, replace=False)] = rng.poisson(12, size=40)
X = scipy.sparse.vstack([counts, scipy.sparse.csr_array(spam)]).tocsr()
is_spam = np.arange(X.shape[0]) >= counts.shape[0]

# %%
# We fit with equal weights and with robust weights.

warnings.simplefilter("ignore", OutlierWarning)
settings = {"loss": "kullback-leibler", "init": "nndsvda", "max_iter": 150, "tol": 1e-3}
plain = RobustNMF(6, weighting="uniform", random_state=0, **settings).fit(X)
robust = RobustNMF(6, random_state=0, **settings).fit(X)
found = robust.outliers_
print(f"{(found & is_spam).sum()} of {is_spam.sum()} spam documents were left out, "
      f"and {(found & ~is_spam).sum()} of {(~is_spam).sum()} others")  # fmt: skip

for name, model in {"plain": plain, "robust": robust}.items():
    print(f"\n{name} NMF, most frequent words of every topic")
    for topic in model.components_:
        print("  ", ", ".join(words[np.argsort(-topic)[:8]]))

figure, axes = plt.subplots(2, 3, figsize=(9, 4.6), layout="constrained")
for ax, topic in zip(axes.ravel(), robust.components_, strict=True):
    top = np.argsort(-topic)[:8][::-1]
    ax.barh(words[top], 100 * topic[top] / topic.sum())
figure.suptitle("topics of robust NMF")
figure.supxlabel("percent of the words of a topic")

# %%
# The divergence of the documents without spam, relative to topics that were learned without spam:

clean = RobustNMF(6, weighting="uniform", random_state=0, **settings).fit(counts)
scores = {
    name: -model.score(counts) / -clean.score(counts)
    for name, model in {"plain": plain, "robust": robust}.items()
}
print({name: round(score, 3) for name, score in scores.items()})
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
length = np.asarray(X.sum(axis=1)).ravel()
for flag, label, colour in ((False, "documentation", "C0"), (True, "spam", "C3")):
    rows = is_spam == flag
    ax.loglog(length[rows], robust.energies_[rows], ".", color=colour, label=label)
ax.set(xlabel="words of a document", ylabel="reconstruction error")
ax.legend()
plt.show()
