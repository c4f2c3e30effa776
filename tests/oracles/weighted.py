"""Weighted updates the paper leaves out, entry by entry: what its "extensions" would be.

Orientation and names of the paper; ``weights(Z)`` gives one weight for every sample from
its energy (Q for EWRNMF, Q^p for FWRNMF). Order: weights, W, H.
"""

import numpy as np


def kl_energies(X, W, H):
    Y = W @ H
    return (X * np.log(X / Y) - X + Y).sum(axis=0)


def kl(X, W, H, weights, T):
    """min sum_j w_j KL(x_j, W h_j)."""
    for _ in range(T):
        w = weights(kl_energies(X, W, H))
        Y = W @ H
        W = W * ((w * X / Y) @ H.T) / ((w * np.ones_like(X)) @ H.T)
        Y = W @ H
        H = H * (W.T @ (w * X / Y)) / (W.T @ (w * np.ones_like(X)))
    return W, H


def alpha_energies(X, W, H, a):
    Y = W @ H
    return ((X**a * Y ** (1 - a) - a * X + (a - 1) * Y) / (a * (a - 1))).sum(axis=0)


def alpha(X, W, H, weights, T, a):
    """min sum_j w_j D_alpha(x_j, W h_j), with the full denominator."""
    for _ in range(T):
        w = weights(alpha_energies(X, W, H, a))
        Y = W @ H
        W = W * (((w * (X / Y) ** a) @ H.T) / ((w * np.ones_like(X)) @ H.T)) ** (1 / a)
        Y = W @ H
        H = H * ((W.T @ (w * (X / Y) ** a)) / (W.T @ (w * np.ones_like(X)))) ** (1 / a)
    return W, H


def convex(X, P, G, weights, T):
    """min sum_j w_j |x_j - X P g_j|^2, the square-root rules of Ding, Li and Jordan."""
    for _ in range(T):
        D = np.diag(weights(((X - X @ P @ G.T) ** 2).sum(axis=0)))
        P = P * np.sqrt((X.T @ X @ D @ G) / (X.T @ X @ P @ G.T @ D @ G))
        F = X @ P
        G = G * np.sqrt((D @ X.T @ F) / (D @ G @ F.T @ F))
    return P, G


def masked(X, M, W, H, weights, T):
    """min sum_j w_j (m / o_j) sum_i M_ij (x_ij - (W H)_ij)^2, o_j known of m entries.

    ``weights(Z)`` is given the energies of whole samples, and how often each counts. X may
    hold anything where M is zero.
    """
    X = np.where(M, X, 0.0)
    whole = M.shape[0] / M.sum(axis=0)
    for _ in range(T):
        Z = whole * (M * (X - W @ H) ** 2).sum(axis=0)
        w = weights(Z, 1 / whole)
        W = W * ((w * M * X) @ H.T) / ((w * M * (W @ H)) @ H.T)
        H = H * (W.T @ (w * M * X)) / (W.T @ (w * M * (W @ H)))
    return W, H


def orthogonal(X, W, H, weights, T, strength):
    """min sum_j w_j (|x_j - W h_j|^2 + s sum_{k != m} |w_k| h_kj |w_m| h_mj)."""
    pairs = [(k, m) for k in range(W.shape[1]) for m in range(W.shape[1]) if k != m]
    for _ in range(T):
        N = np.sqrt((W**2).sum(axis=0))
        together = sum(N[k] * H[k] * N[m] * H[m] for k, m in pairs)
        w = weights(((X - W @ H) ** 2).sum(axis=0) + strength * together)
        paid = np.zeros_like(W)
        for k, m in pairs:
            paid[:, k] += strength * (w * H[k] * H[m]).sum() * N[m] / N[k] * W[:, k]
        W = W * ((w * X) @ H.T) / ((w * (W @ H)) @ H.T + paid)
        N = np.sqrt((W**2).sum(axis=0))
        paid = np.zeros_like(H)
        for k, m in pairs:
            paid[k] += strength * N[k] * N[m] * H[m]
        H = H * (W.T @ X) / (W.T @ W @ H + paid)
    return W, H
