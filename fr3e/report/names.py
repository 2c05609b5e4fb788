"""Names of what the report makes, readable without any heavy import: the Snakefile names its outputs from here."""

TABLE1 = ("csv", "md", "tex", "html")
COST = ("csv", "md", "html")
# The paper's figures under their numbers (docs of each: workflow/report/<name>.rst), then our diagnostics.
FIGURES = (
    "fig2_tokens",
    "fig3_entropy",
    "fig4_length",
    "fig5_advantage",
    "fig7_all_wrong",
    "fig8_all_right",
    "fig9_heatmap",
    "learning_curves",
    "headline_bars",
    "values_by_state",
    "alpha_histogram",
    "anchor_positions",
    "states_filtered",
    "length_reward_covariance",
)
