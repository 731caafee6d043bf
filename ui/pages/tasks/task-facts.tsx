import type { JSX } from 'solid-js'
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import { Facts, type Fact } from '../../components/facts.tsx'
import { clockTime } from '../../format/clock.ts'
import { mib, percent, seconds, UNKNOWN, whole } from '../../format/figures.ts'
import { TASK_TIMES } from '../../format/task-times.ts'
import { askedWords, idleWords, isOpen, residencyWords, usedMib } from '../../format/tasks.ts'
import { useCluster } from '../../state/cluster.tsx'
import { Where } from './task-columns.tsx'

export function TaskFacts(props: { readonly task: TaskBody }): JSX.Element {
  const { now } = useCluster()
  const facts = (): readonly Fact[] => {
    const { task } = props
    const starvation = task.starvation_percent
    return [
      {
        name: 'Residency',
        value: residencyWords(task),
        title: 'Location of the memory of the task; — if the task is not placed',
      },
      {
        name: 'Node:GPU',
        value: <Where task={task} />,
        title: task.placement === null ? 'Not placed.' : undefined,
      },
      { name: 'VRAM requested', value: askedWords(task) },
      {
        name: 'VRAM used',
        value: mib(usedMib(task)),
        title: 'In use on each GPU now; — if the task is not placed',
      },
      { name: 'GPU mode', value: task.gpu_mode },
      { name: 'noswap', value: task.noswap === 1 ? '1: stays in physical VRAM' : '0: may be swapped out' },
      { name: 'Priority', value: `P${task.priority}` },
      { name: 'Idle', value: idleWords(task, now()), title: 'Time since the last GPU use' },
      { name: 'Starvation', value: percent(starvation.total) },
      {
        name: 'Queue, swap, compute starvation',
        value: `${percent(starvation.queue)}, ${percent(starvation.swap)}, ${percent(starvation.compute)}`,
        title: 'Not started; started but not resident; resident but sharing the GPU',
      },
      { name: 'Swap-outs', value: whole(task.swap_outs) },
      {
        name: 'Owner',
        value: task.owner ?? UNKNOWN,
        title: task.owner === null ? 'Submitted without authentication.' : undefined,
      },
      { name: 'Groups', value: task.groups.length === 0 ? 'common pool' : task.groups.join(', ') },
      { name: 'Labels', value: labelWords(task.labels) },
      { name: 'Command', value: task.command === null ? 'none: a lease' : task.command.join(' ') },
      ...(task.image === null ? [] : [{ name: 'Image', value: task.image }]),
      ...(task.image_digest === null ? [] : [{ name: 'Image digest', value: task.image_digest }]),
      ...preparationsOf(task),
      ...portsOf(task),
      ...(task.workdir === null ? [] : [{ name: 'Uploaded folder', value: task.workdir }]),
      ...(task.cwd === null ? [] : [{ name: 'Starts in', value: task.cwd }]),
      ...(task.mounts.length === 0 ? [] : [{ name: 'Data folders', value: task.mounts.join(', ') }]),
      ...limitsOf(task),
      ...(task.idle_swap_out_seconds === null
        ? []
        : [{ name: 'Swapped out after', value: `${seconds(task.idle_swap_out_seconds)} idle` }]),
      ...(task.keep_warm ? [{ name: 'Kept warm', value: 'swapped out last in its class' }] : []),
      { name: 'Swap method', value: task.noswap === 1 ? 'none' : (task.swap_method ?? 'driver') },
      ...variablesOf(task),
      ...TASK_TIMES.map(({ field, name, unset }) => {
        const time = task[field]
        return { name, value: time === null ? unset : seconds(time) }
      }),
      { name: 'On node loss', value: task.on_node_loss },
      {
        name: 'Requeues after short attempts',
        value:
          task.max_requeues === null
            ? `${whole(task.requeues)} (no limit)`
            : `${whole(task.requeues)} of ${whole(task.max_requeues)}`,
      },
      ...task.start_refusals.map(({ node_name: node, detail }) => ({
        name: `Refused by ${node}`,
        value: detail,
      })),
      ...(task.start_pause === null
        ? []
        : [{ name: 'Next attempt', value: clockTime(task.start_pause.until) }]),
      { name: 'Attempt', value: whole(task.attempt) },
      { name: 'Submitted', value: clockTime(task.submitted_at) },
      {
        name: 'First started',
        value: clockTime(task.first_started_at),
        title: task.first_started_at === null ? 'Not yet' : undefined,
      },
      ...(isOpen(task) ? [] : endOf(task)),
      { name: 'ID', value: task.id },
    ]
  }
  return (
    <section class="card" aria-label="Details">
      <Facts facts={facts()} />
    </section>
  )
}

function endOf(task: TaskBody): readonly Fact[] {
  return [
    { name: 'Ended', value: clockTime(task.finished_at) },
    { name: 'End', value: task.end_code ?? UNKNOWN, title: task.end_reason ?? undefined },
    {
      name: 'Exit code',
      value: task.exit_code ?? UNKNOWN,
      title: task.exit_code === null ? 'No exit code was reported.' : undefined,
    },
  ]
}

function preparationsOf({ preparing }: TaskBody): readonly Fact[] {
  const size = (bytes: number) => mib(Math.ceil(bytes / (1024 * 1024)))
  return preparing.map(({ node_name: node, state, bytes_done: done, bytes_total: total }) => ({
    name: `Prepared by ${node}`,
    value:
      state === 'prepared' ? 'ready' : total === null ? 'in progress' : `${size(done)} of ${size(total)}`,
    title: 'The image and files of the task; no VRAM is committed during the preparation',
  }))
}

function portsOf({ ports }: TaskBody): readonly Fact[] {
  const all = ports.map(({ name, target, protocol }) => `${name}=${target}/${protocol}`)
  return all.length === 0
    ? []
    : [{ name: 'Ports', value: all.join(', '), title: 'Requests to these ports swap the task in' }]
}

function limitsOf(task: TaskBody): readonly Fact[] {
  const { memory_mib: memory, cpus, pids_limit: pids, vram_limit_mib: vram, placement } = task
  const set = placement?.memory_limit_mib ?? memory
  const words = set === memory ? mib(memory) : `${mib(memory)} requested, ${mib(set)} set`
  const title =
    set === memory
      ? undefined
      : 'Includes the VRAM of the task, because a swap-out copies it into the memory of the process'
  return [
    ...(memory === null ? [] : [{ name: 'Memory limit', value: words, title }]),
    ...(cpus === null ? [] : [{ name: 'CPUs', value: whole(cpus) }]),
    ...(pids === null ? [] : [{ name: 'Processes', value: `at most ${whole(pids)}` }]),
    ...(vram === null
      ? []
      : [
          {
            name: 'VRAM limit',
            value: `${mib(vram)} per GPU`,
            title: 'The task is stopped if it uses more',
          },
        ]),
  ]
}

/** Names only; values are for its owner and admins. */
function variablesOf({ env_names: names, secrets }: TaskBody): readonly Fact[] {
  const all = [...names, ...Object.keys(secrets).map((name) => `${name} (secret)`)]
  return all.length === 0 ? [] : [{ name: 'Variables', value: all.join(', ') }]
}

function labelWords(labels: TaskBody['labels']): string {
  const words = Object.entries(labels).map(([name, value]) => (value === '' ? name : `${name}=${value}`))
  return words.length === 0 ? 'none' : words.join(', ')
}
