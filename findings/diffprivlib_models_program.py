"""diffprivlib 0.6.6: models of which one row changes more than epsilon allows.

The script needs numpy and diffprivlib with scikit-learn 1.5. One row is replaced or added. Epsilon
is 1, so a probability may grow by a factor of 2.72.
"""

import warnings

import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression, RandomForestClassifier
from diffprivlib.models.forest import DecisionTreeClassifier

RUNS, FORESTS = 1000, 300


def logistic_regression(last):
    """Return how often two rows at 0 are certain to have one label, but a row at 1 is not."""
    rows, labels, hits = np.array([[0.0], [0.0], [last]]), [0, 1, 0], 0
    for _ in range(RUNS):
        model = LogisticRegression(epsilon=1.0, data_norm=1.0).fit(rows, labels)
        at_zero, at_one = model.intercept_[0], model.intercept_[0] + model.coef_[0, 0]
        hits += 5 < abs(at_zero) < 60 and abs(at_one) < 2
    return hits


def loss(intercept):
    """Return the logarithm of the ratio of the densities at coefficients (-intercept, intercept).

    The density is that of the noise that gives the coefficients, times the determinant of the
    Hessian. The penalty is 1, and only the coefficient has it.
    """
    scale = 2 * np.sqrt(2) / (1 - 2 * np.log(1 + 0.25 * np.sqrt(2)))
    logs = []
    for last in (1.0, 0.0):
        rows = np.array([[0.0, 1.0], [0.0, 1.0], [last, 1.0]])
        chances = 1 / (1 + np.exp(-rows @ [-intercept, intercept]))
        noise = -(rows.T @ (chances - [0, 1, 0]) + [-intercept, 0])
        hessian = (rows.T * (chances * (1 - chances))) @ rows + np.diag([1, 0])
        logs.append(np.log(np.linalg.det(hessian)) - np.linalg.norm(noise) / scale)
    return logs[0] - logs[1]


def classes(labels):
    """Return the shape of the coefficients."""
    model = LogisticRegression(epsilon=1.0, data_norm=1.0).fit(np.zeros((4, 1)), labels)
    return model.coef_.shape


def linear_regression(label):
    """Return how often the coefficient is above 100, for a label outside of its bounds."""
    hits = 0
    for _ in range(RUNS):
        model = LinearRegression(
            epsilon=1.0, bounds_X=(-1, 1), bounds_y=(-1, 1), fit_intercept=False
        )
        hits += model.fit([[0.0], [1.0]], [0.0, label]).coef_[0] > 100
    return hits


def tree(labels):
    """Return how often the label at 0 is 1."""
    hits = 0
    for _ in range(RUNS):
        model = DecisionTreeClassifier(1, epsilon=1.0, bounds=(0, 1), classes=[0, 1])
        hits += model.fit(np.zeros((len(labels), 1)), labels).predict([[0.0]])[0]
    return int(hits)


def forest(labels):
    """Return how often the trees 2 to 5 give the labels 1, 0, 1, 0 at 0."""
    hits = 0
    for _ in range(FORESTS):
        model = RandomForestClassifier(5, epsilon=1.0, bounds=(0, 1), classes=[0, 1], max_depth=1)
        model.fit(np.zeros((len(labels), 1)), labels)
        hits += [int(one.predict([[0.0]])[0]) for one in model.estimators_[1:]] == [1, 0, 1, 0]
    return hits


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for last in (1.0, 0.0):
        hits = logistic_regression(last)
        print(f"LogisticRegression, a row at {last:.0f}: event in {hits:4} of {RUNS} runs")
    print("LogisticRegression, loss at intercept -5, -10, -20:", end="")
    print("", ", ".join(f"{loss(-size):.1f}" for size in (5, 10, 20)))
    for labels in ([0, 1, 1, 2], [0, 1, 1, 0]):
        print(f"LogisticRegression, labels {labels}: coefficients of shape {classes(labels)}")
    for label in (1000.0, 0.0):
        hits = linear_regression(label)
        print(f"LinearRegression, a label {label:4.0f}: event in {hits:4} of {RUNS} runs")
    for labels in ([0, 1], [0, 0]):
        print(f"DecisionTreeClassifier, labels {labels}: 1 in {tree(labels):4} of {RUNS} runs")
    rows = [0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1]
    for labels in (rows[:-1], rows):
        hits = forest(labels)
        print(f"RandomForestClassifier, {len(labels)} rows: event in {hits:4} of {FORESTS} runs")
