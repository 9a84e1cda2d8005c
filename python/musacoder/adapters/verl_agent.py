"""verl_agent.py - importing this registers the agent loop 'musacoder' (VERL_USE_EXTERNAL_MODULES)."""

from verl.experimental.agent_loop.agent_loop import register

from .verl import agent_loop

KernelAgentLoop = register("musacoder")(agent_loop())
