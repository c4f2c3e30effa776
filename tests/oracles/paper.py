"""The six methods of the paper, equation by equation.

Each function runs T iterations from (W, H) and returns (W, H, objectives), where
``objectives[t]`` is the objective after t iterations.
"""

import numpy as np


def energies(X, W, H):
    """Z_j = sum_i (X - WH)_ij^2."""
    return ((X - W @ H) ** 2).sum(axis=0)


# --- FWRNMF, algorithm 1 -----------------------------------------------------------------


def fuzzy_importances(Z, p):
    """Equation 16."""
    root = (1.0 / Z) ** (1.0 / (p - 1.0))
    return root / root.sum()


def fwrnmf(X, W, H, p, T):
    """Algorithm 1: Q by equation 16, W by equation 18, H by equation 19."""
    objectives = [_fuzzy_objective(X, W, H, p)]
    for _ in range(T):
        Q = fuzzy_importances(energies(X, W, H), p)
        Qp = Q**p
        W = W * ((X * Qp) @ H.T) / (((W @ H) * Qp) @ H.T)
        H = H * (W.T @ X) / (W.T @ W @ H)
        objectives.append(_fuzzy_objective(X, W, H, p))
    return W, H, objectives


def _fuzzy_objective(X, W, H, p):
    """Equation 10, minimised over Q."""
    Z = energies(X, W, H)
    return (fuzzy_importances(Z, p) ** p * Z).sum()


# --- EWRNMF, algorithm 2 -----------------------------------------------------------------


def entropy_importances(Z, gamma):
    """Equation 26; the smallest energy is taken off, or most of the paper's grid is 0/0."""
    share = np.exp(-(Z - Z.min()) / gamma)
    return share / share.sum()


def ewrnmf_iteration(X, W, H, gamma):
    """Algorithm 2, one turn: Q by equation 26, W by equation 28, H by equation 29."""
    Q = entropy_importances(energies(X, W, H), gamma)
    W = W * ((X * Q) @ H.T) / (((W @ H) * Q) @ H.T)
    H = H * (W.T @ X) / (W.T @ W @ H)
    return W, H


def ewrnmf(X, W, H, gamma, T):
    """Algorithm 2."""
    objectives = [_entropy_objective(X, W, H, gamma)]
    for _ in range(T):
        W, H = ewrnmf_iteration(X, W, H, gamma)
        objectives.append(_entropy_objective(X, W, H, gamma))
    return W, H, objectives


def _entropy_objective(X, W, H, gamma):
    """Equation 20, minimised over Q (with 0 ln 0 = 0)."""
    Z = energies(X, W, H)
    Q = entropy_importances(Z, gamma)
    entropy = np.where(Q > 0, Q * np.log(np.where(Q > 0, Q, 1.0)), 0.0)
    return (Q * Z).sum() + gamma * entropy.sum()


# --- the four methods the paper compares with --------------------------------------------


def eucnmf(X, W, H, T):
    """Lee and Seung: equations 7 and 8."""
    objectives = [energies(X, W, H).sum()]
    for _ in range(T):
        W = W * (X @ H.T) / (W @ H @ H.T)
        H = H * (W.T @ X) / (W.T @ W @ H)
        objectives.append(energies(X, W, H).sum())
    return W, H, objectives


def nmfl2(X, W, H, T):
    """Kong, Ding and Huang (2011): D_jj = 1 / |x_j - W h_j|, columns weighted by D."""
    objectives = [np.sqrt(energies(X, W, H)).sum()]
    for _ in range(T):
        D = np.diag(1.0 / np.sqrt(energies(X, W, H)))
        W = W * (X @ D @ H.T) / (W @ H @ D @ H.T)
        H = H * (W.T @ X @ D) / (W.T @ W @ H @ D)
        objectives.append(np.sqrt(energies(X, W, H)).sum())
    return W, H, objectives


def huberrnmf(X, W, H, cutoff, T):
    """Du, Li and Shen (2012): half-quadratic, one set of entry weights an iteration."""
    objectives = [_huber_objective(X, W, H, cutoff)]
    for _ in range(T):
        residual = np.abs(X - W @ H)
        omega = np.where(residual <= cutoff, 1.0, cutoff / np.where(residual > 0, residual, 1.0))
        W = W * ((omega * X) @ H.T) / ((omega * (W @ H)) @ H.T)
        H = H * (W.T @ (omega * X)) / (W.T @ (omega * (W @ H)))
        objectives.append(_huber_objective(X, W, H, cutoff))
    return W, H, objectives


def _huber_objective(X, W, H, cutoff):
    r = np.abs(X - W @ H)
    return np.where(r <= cutoff, r**2, 2 * cutoff * r - cutoff**2).sum()


def convexnmf(X, P, G, T):
    """Ding, Li and Jordan (2010): X ~ X P G^T with P, G (N x L); Y = X^T X >= 0.

    Their rules for W (here P) and G with the negative part of Y zero. P first: the
    order of the paper's algorithms, base before representation.
    """
    Y = X.T @ X
    objectives = [((X - X @ P @ G.T) ** 2).sum()]
    for _ in range(T):
        P = P * np.sqrt((Y @ G) / (Y @ P @ G.T @ G))
        G = G * np.sqrt((Y @ P) / (G @ P.T @ Y @ P))
        objectives.append(((X - X @ P @ G.T) ** 2).sum())
    return P, G, objectives
