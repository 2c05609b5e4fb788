"""Every method of verl, TransferQueue and vLLM that we override or call, with the signature we rely on.

After an upgrade this test names what changed; docs/verl.md says what we do with each.
"""

import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verl")

from fr3e.engine.verl import VERL_VERSION

pytestmark = pytest.mark.verl

SIGNATURES = {
    "verl.experimental.agent_loop.agent_loop:AgentLoopOutput": "(*, prompt_ids, response_ids, response_mask, response_logprobs=None, routed_experts=None, multi_modal_data=None, reward_score=None, num_turns=0, metrics, extra_fields={}, mm_processor_kwargs=None, mm_processor_output=None)",
    "verl.experimental.agent_loop.agent_loop:AgentLoopMetrics": "(*, generate_sequences=0.0, tool_calls=0.0, compute_score=0.0, num_preempted=-1)",
    "verl.workers.rollout.replica:TokenOutput": "(*, token_ids, log_probs=None, routed_experts=None, stop_reason=None, num_preempted=None, extra_fields={})",
    "verl.trainer.constants_ppo:get_ppo_ray_runtime_env": "(config=None)",
    "verl.utils.checkpoint.checkpoint_manager:find_latest_ckpt_path": "(path, directory_format='global_step_{}')",
    "verl.utils.checkpoint.fsdp_checkpoint_manager:FSDPCheckpointManager.save_checkpoint": "(self, local_path, hdfs_path=None, global_step=0, max_ckpt_to_keep=None)",
    "verl.utils.checkpoint.fsdp_checkpoint_manager:FSDPConfig.__init__": "(self, FSDP_version, world_size)",
    "verl.trainer.main_ppo:run_ppo": "(config, task_runner_class)",
    "verl.trainer.main_ppo:TaskRunnerV1.run": "(self, config)",
    "verl.trainer.ppo.v1:register_trainer": "(name)",
    "verl.trainer.ppo.v1:PPOTrainerSync.__init__": "(self, config)",
    "verl.trainer.ppo.v1:PPOTrainerSync.fit": "(self, agent_loop_manager)",
    "verl.trainer.ppo.v1:PPOTrainerSync.step": "(self, metrics, timing_raw)",
    "verl.trainer.ppo.v1:PPOTrainerSync._step_once": "(self, metrics, timing_raw, sample_batch_size)",
    "verl.trainer.ppo.v1:PPOTrainerSync.prepare_step": "(self)",
    "verl.trainer.ppo.v1:PPOTrainerSync.on_train_begin": "(self)",
    "verl.trainer.ppo.v1:PPOTrainerSync.on_step_end": "(self)",
    "verl.trainer.ppo.v1:PPOTrainerSync.get_reward_handles": "(self)",
    "verl.trainer.ppo.v1:PPOTrainerSync._build_replay_buffer": "(self)",
    "verl.trainer.ppo.v1:PPOTrainerSync._init_dataloader": "(self)",
    "verl.trainer.ppo.v1:PPOTrainerSync._balance_batch": "(self, batch, metrics, logging_prefix='global_seqlen', keep_minibatch=False)",
    "verl.trainer.ppo.v1:PPOTrainerSync._compute_old_log_prob": "(self, batch, metrics)",
    "verl.trainer.ppo.v1:PPOTrainerSync._compute_ref_log_prob": "(self, batch, metrics)",
    "verl.trainer.ppo.v1:PPOTrainerSync._compute_advantage": "(self, batch, metrics)",
    "verl.trainer.ppo.v1:PPOTrainerSync._update_actor": "(self, batch, metrics)",
    "verl.trainer.ppo.v1:PPOTrainerSync._compute_metrics": "(self, batch, metrics, timing_raw, global_steps, epoch)",
    "verl.trainer.ppo.v1:PPOTrainerSync._save_checkpoint": "(self)",
    "verl.trainer.ppo.v1:PPOTrainerSync._load_checkpoint": "(self)",
    "verl.trainer.ppo.v1.replay_buffer:ReplayBuffer.sample": "(self, global_steps, partition_id, batch_size)",
    "verl.trainer.ppo.v1:AgentLoopWorkerTQ.__init__": "(self, *args, **kwargs)",
    "verl.trainer.ppo.v1:AgentLoopWorkerTQ.generate_sequences": "(self, batch)",
    "verl.trainer.ppo.v1:AgentLoopWorkerTQ._run_prompt": "(self, prompt, sampling_params, trajectory, trace=False)",
    "verl.trainer.ppo.v1:AgentLoopWorkerTQ._compute_score": "(self, outputs, kwargs)",
    "verl.trainer.ppo.v1:AgentLoopManagerTQ.__init__": "(self, *args, **kwargs)",
    "verl.trainer.ppo.v1:AgentLoopManagerTQ.generate_sequences": "(self, prompts)",
    "verl.trainer.ppo.padding_utils:upsample_batch_to_divisible_size": "(batch, batch_multiple, eos_token_id)",
    "verl.trainer.ppo.utils:need_critic": "(config)",
    "verl.trainer.ppo.utils:need_reference_policy": "(config)",
    "verl.utils.config:validate_config": "(config, use_reference_policy, use_critic)",
    "verl.utils.distributed:initialize_global_process_group_ray": "(timeout_second=None, backend=None)",
    "verl.utils.tensordict_utils:get_tensordict": "(tensor_dict, non_tensor_dict=None)",
    "verl.utils.tensordict_utils:assign_non_tensor_data": "(tensor_dict, key, val)",
    "verl.utils.tensordict_utils:list_of_dict_to_tensordict": "(list_of_dicts)",
    "verl.workers.engine_workers:ActorRolloutRefWorker.set_loss_fn": "(self, loss_fn)",
    "verl.workers.engine_workers:ActorRolloutRefWorker.update_actor": "(self, data)",
    "verl.workers.engine_workers:TrainingWorker.train_mini_batch": "(self, data)",
    "verl.workers.utils.padding:no_padding_2_padding": "(tensor, data)",
    "verl.workers.rollout.llm_server:LLMServerClient.generate": "(self, request_id, *, prompt_ids, sampling_params, image_data=None, video_data=None, audio_data=None, mm_processor_kwargs=None, **kwargs)",
    "verl.workers.rollout.replica:RolloutReplicaRegistry.register": "(cls, name, loader)",
    "verl.workers.rollout.vllm_rollout.vllm_async_server:vLLMHttpServer.generate": "(self, prompt_ids, sampling_params, request_id, image_data=None, video_data=None, audio_data=None, mm_processor_kwargs=None, priority=0, kv_transfer_params=None)",
    "verl.workers.rollout.vllm_rollout.vllm_async_server:vLLMHttpServer._get_worker_extension_cls": "(self)",
    "verl.workers.rollout.vllm_rollout.vllm_async_server:vLLMReplica.__init__": "(self, replica_rank, config, model_config, gpus_per_node=8, is_reward_model=False, is_teacher_model=False, name_suffix='')",
    "verl.workers.rollout.vllm_rollout.utils:vLLMColocateWorkerExtension.update_weights_from_ipc": "(self, peft_config=None, base_sync_done=False, use_shm=False)",
    "verl.plugin.platform.platform_manager:PlatformRegistry.register": "(cls, platform)",
    "transfer_queue:kv_batch_put": "(keys, partition_id, fields=None, tags=None, data_parser=None)",
    "transfer_queue:kv_batch_get": "(keys, partition_id, select_fields=None)",
    "transfer_queue:kv_list": "(partition_id=None)",
    "transfer_queue:kv_clear": "(keys, partition_id)",
    "transfer_queue:async_kv_put": "(key, partition_id, fields=None, tag=None, data_parser=None)",
    "transfer_queue:async_kv_batch_put": "(keys, partition_id, fields=None, tags=None, data_parser=None)",
    "transfer_queue:KVBatchMeta.__init__": "(self, keys=<factory>, tags=<factory>, partition_id=None, fields=None, extra_info=<factory>)",
    "transfer_queue:KVBatchMeta.reorder": "(self, indexes)",
    "vllm.v1.sample.logits_processor:LogitsProcessor.__init__": "(self, vllm_config, device, is_pin_memory)",
    "vllm.v1.sample.logits_processor:LogitsProcessor.apply": "(self, logits)",
    "vllm.v1.sample.logits_processor:LogitsProcessor.update_state": "(self, batch_update)",
    "vllm.v1.sample.logits_processor:LogitsProcessor.is_argmax_invariant": "(self)",
    "vllm.v1.sample.logits_processor.builtin:process_dict_updates": "(req_entries, batch_update, new_state)",
    "vllm.model_executor.layers.utils:dispatch_cpu_unquantized_gemm": "(layer, remove_weight)",
    "vllm.v1.engine.async_llm:AsyncLLM.collective_rpc": "(self, method, timeout=None, args=(), kwargs=None)",
}
PLATFORM = {
    "available": "is_available current_device device_count set_device synchronize",
    "random": "manual_seed manual_seed_all",
    "memory": "set_allocator_settings empty_cache",
    "identity": "device_name vendor_name device_module get_device_capability communication_backend_name",
    "profiling": "nvtx_range profiler_start profiler_stop",
    "ray": "visible_devices_envvar ray_resource_name ray_noset_envvars is_ipc_supported cudart",
}
"""Abstract methods of verl's platform that cpu_platform implements."""


def signature(name: str) -> str:
    """Parameters of `module:dotted.name`, without annotations and what Ray adds."""
    module, path = name.split(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = found.__ray_metadata__.modified_class if hasattr(found, "__ray_metadata__") else found
        found = inspect.getattr_static(found, part) if inspect.isclass(found) else getattr(found, part)
    if isinstance(found, classmethod | staticmethod):
        found = found.__func__
    whole = inspect.signature(inspect.unwrap(found))
    plain = [p.replace(annotation=p.empty) for p in whole.parameters.values() if p.name != "_ray_trace_ctx"]
    return str(whole.replace(parameters=plain, return_annotation=whole.empty))


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_the_signature_is_the_one_this_engine_was_written_for(name: str) -> None:
    try:
        found = signature(name)
    except (ImportError, AttributeError) as error:
        pytest.fail(f"{name} is gone ({error}); this engine overrides or calls it")
    assert found == SIGNATURES[name], f"{name} changed: was {SIGNATURES[name]}, is {found}"


def test_the_version_is_the_one_pinned() -> None:
    from importlib.metadata import version

    assert version("verl") == VERL_VERSION


def test_the_platform_has_no_abstract_method_that_we_lack() -> None:
    from verl.plugin.platform.platform_base import PlatformBase

    expected = {name for names in PLATFORM.values() for name in names.split()}
    assert set(PlatformBase.__abstractmethods__) == expected, "verl.plugin.platform.PlatformBase changed"


def test_verl_still_loads_plug_ins_by_entry_point() -> None:
    import subprocess
    import sys

    code = "import sys, verl; sys.exit('fr3e.engine.verl.plugin' not in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=300, check=False).returncode == 0


def test_our_replica_is_what_verl_builds_under_the_name_vllm() -> None:
    from verl.workers.rollout.replica import RolloutReplicaRegistry, get_rollout_replica_class

    from fr3e.engine.verl import server

    before = RolloutReplicaRegistry._registry["vllm"]
    server.register()
    try:
        assert get_rollout_replica_class("vllm") is server.FR3EReplica
    finally:
        RolloutReplicaRegistry._registry["vllm"] = before


def test_our_trainer_is_what_verl_builds_under_its_mode() -> None:
    from verl.trainer.ppo.v1 import get_trainer_cls

    from fr3e.engine.verl.config import TRAINER_MODE
    from fr3e.engine.verl.trainer import FR3ETrainer

    assert get_trainer_cls(TRAINER_MODE) is FR3ETrainer


def test_a_rank_writes_the_shards_that_seal_and_export_look_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import torch
    from verl.utils.checkpoint import fsdp_checkpoint_manager as managers

    from fr3e.engine.verl import export, state

    model = torch.nn.Linear(2, 2)
    manager = managers.FSDPCheckpointManager.__new__(managers.FSDPCheckpointManager)
    manager.model, manager.optimizer, manager.lr_scheduler = model, torch.optim.AdamW(model.parameters()), None
    manager.rank, manager.world_size = 1, 2  # rank 0 writes more, of no concern to us but for fsdp_config.json
    manager.checkpoint_save_contents = ["model", "optimizer", "extra"]
    manager.checkpoint_config, manager.previous_saved_paths = None, []
    monkeypatch.setattr(torch.distributed, "barrier", lambda: None)
    manager.save_checkpoint(str(tmp_path / "actor"), global_step=2)
    written = {f"actor/{path.name}" for path in (tmp_path / "actor").iterdir()}
    assert written == {name for name in state.shards(2) if name.endswith("_rank_1.pt")} and len(written) == 3
    (shard,) = [m for name in written if (m := export.SHARD.fullmatch(name.removeprefix("actor/")))]
    assert shard.groups() == ("2", "1")
    source = inspect.getsource(managers.FSDPCheckpointManager.save_checkpoint)
    assert '"fsdp_config.json"' in source and "world_size=self.world_size" in source


def test_verl_resumes_from_the_checkpoint_that_choose_names(tmp_path: Path) -> None:
    from verl.trainer.ppo.v1 import PPOTrainerSync
    from verl.utils.checkpoint.checkpoint_manager import find_latest_ckpt_path

    from fr3e.engine.verl import state
    from fr3e.files import write_json

    for update in (2, 4):
        folder = state.folder_of(tmp_path, update)
        (folder / "actor").mkdir(parents=True)
        for name in state.shards(1):
            (folder / name).write_bytes(b"weights")
        write_json(folder / "actor" / "fsdp_config.json", {"world_size": 1})
        state.save(tmp_path, state.RunState(update=update))
        if update == 2:
            state.seal(tmp_path, update, "this run", 1, 1.0)
    (tmp_path / state.TRACKER).write_text("4")  # verl's own word, of a checkpoint that was cut off
    assert state.choose(tmp_path, 1) == 2
    assert find_latest_ckpt_path(str(tmp_path)) == str(state.folder_of(tmp_path, 2))
    source = inspect.getsource(PPOTrainerSync._save_checkpoint)
    for name in ('f"global_step_{self.global_steps}"', 'local_global_step_folder, "actor"', f'"{state.TRACKER}"'):
        assert name in source, f"verl no longer writes {name}"


def test_a_changed_signature_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import verl.trainer.ppo.padding_utils as padding

    name = "verl.trainer.ppo.padding_utils:upsample_batch_to_divisible_size"
    monkeypatch.setattr(padding, "upsample_batch_to_divisible_size", lambda batch, multiple: batch)
    with pytest.raises(AssertionError, match="upsample_batch_to_divisible_size changed"):
        test_the_signature_is_the_one_this_engine_was_written_for(name)
