import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'

/** GPU models and nodes of each; the VRAM of G2 and G3 is not public, as in the public node list. */
const NODES = { T4: 30, V100M32: 20, G2: 20, G3: 10 } as const
const GPUS_PER_NODE = 8
const GPU_COUNTS = [1, 1, 1, 1, 1, 2, 4, 8] as const
const QOS = ['LS', 'BE', 'BE', 'Burstable', 'Guaranteed'] as const
/** Every ninth pod of the list has no GPU. */
const POD_WITHOUT_GPU_EVERY = 8
const JOBS = 2000
const SPAN_S = 2_500_000
const LONGEST_S = 160_000

interface Job {
  readonly submitS: number
  readonly durationS: number
  readonly gpus: number
  readonly gpuMilli: number
  readonly model: string
  readonly qos: string
}

/**
 * Writes 2,000 jobs into the folder in the formats, and under the file names, of the public traces. The jobs
 * come from a seed and use no inexact arithmetic, so that every machine writes the same bytes.
 */
export function writeGeneratedTraces(folder: string): void {
  mkdirSync(folder, { recursive: true })
  const jobs = generateJobs()
  for (const [name, lines] of Object.entries({
    'openb_node_list_gpu_node.csv': nodeList(),
    'openb_pod_list_default.csv': podList(jobs, () => ''),
    'openb_pod_list_gpuspec33.csv': podList(jobs, ({ model }, i) => (i % 3 === 0 ? model : '')),
    'openb_pod_list_gpushare60.csv': podList(
      jobs.map((job, i) => (i % 5 < 3 ? { ...job, gpuMilli: 100 + (i % 800) } : job)),
      () => '',
    ),
    'w1_openb_gpu_pods.csv': tiresiasJobs(jobs),
    'w2_openb_gpu_pods_x100.csv': tiresiasJobs(
      jobs.map((job) => ({ ...job, submitS: Math.floor(job.submitS / 100) })),
    ),
    'tiresias_60_job.csv': tiresiasJobs(jobs.slice(0, 60)),
    'gavel_msr_seed0.csv': gavelJobs(jobs),
    'azure_llm_2023_conv.csv': requests(),
    'sample_accasim.swf': swfJobs(jobs.slice(0, 25)),
  }))
    writeFileSync(join(folder, name), `${lines.join('\n')}\n`)
}

function generateJobs(): readonly Job[] {
  const random = seededStream(1, 'generated-traces')
  const below = (limit: number): number => Math.floor(random() * limit)
  const oneOf = <T>(items: readonly T[]): T => items[below(items.length)]!
  let submitS = 0
  return Array.from({ length: JOBS }, (_, i) => {
    if (i > 0) submitS += below((2 * SPAN_S) / JOBS)
    const gpus = oneOf(GPU_COUNTS)
    return {
      submitS,
      durationS: 1 + Math.floor(random() * random() * LONGEST_S),
      gpus,
      gpuMilli: gpus > 1 ? 1000 : oneOf([600, 700, 800, 900, 1000]),
      model: oneOf(Object.keys(NODES)),
      qos: oneOf(QOS),
    }
  })
}

function nodeList(): readonly string[] {
  const models = Object.entries(NODES).flatMap(([model, count]) => Array.from({ length: count }, () => model))
  return [
    'sn,cpu_milli,memory_mib,gpu,model',
    ...models.map((model, i) => `node-${i},96000,393216,${GPUS_PER_NODE},${model}`),
  ]
}

function podList(jobs: readonly Job[], specOf: (job: Job, i: number) => string): readonly string[] {
  const rows = jobs.flatMap((job, i) => {
    const endS = job.submitS + job.durationS
    const pod = (id: string, gpus: number, gpuMilli: number, spec: string): string =>
      `${id},4000,8192,${gpus},${gpuMilli},${spec},${job.qos},Running,${job.submitS},${endS},${job.submitS}`
    const withGpu = pod(`pod-${i}`, job.gpus, job.gpuMilli, specOf(job, i))
    return i % POD_WITHOUT_GPU_EVERY === 0 ? [withGpu, pod(`pod-${i}-cpu`, 0, 0, '')] : [withGpu]
  })
  return [
    'name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,' +
      'scheduled_time',
    ...rows,
  ]
}

function tiresiasJobs(jobs: readonly Job[]): readonly string[] {
  return [
    'job_id,num_gpu,submit_time,iterations,model_name,duration,interval',
    ...jobs.map(({ gpus, submitS, durationS }, i) => `${i},${gpus},${submitS},1000,resnet50,${durationS},0`),
  ]
}

function gavelJobs(jobs: readonly Job[]): readonly string[] {
  return [
    'job_id,vc,model,gpus,total_steps,arrival_s,duration_s_v100,duration_extrapolated',
    ...jobs.map(
      ({ gpus, submitS, durationS }, i) =>
        `job-${i},vc-${i % 7},ResNet-50,${gpus},1000,${submitS}.0,${durationS}.5,0`,
    ),
  ]
}

/** An hour of requests. */
function requests(): readonly string[] {
  const random = seededStream(1, 'generated-requests')
  return [
    'arrival_s,context_tokens,generated_tokens',
    ...Array.from(
      { length: JOBS },
      (_, i) =>
        `${((i * 3600) / JOBS).toFixed(6)},${1 + Math.floor(random() * 4000)},` +
        `${1 + Math.floor(random() * 400)}`,
    ),
  ]
}

/** Four processors for each GPU. */
function swfJobs(jobs: readonly Job[]): readonly string[] {
  return jobs.map(({ gpus, submitS, durationS }, i) => {
    const processors = 4 * gpus
    const unknown = '-1 -1'
    return (
      `${i + 1} ${submitS} 0 ${durationS} ${processors} ${unknown} ${processors} ${unknown} 1 7 1 ` +
      `${unknown} 1 ${unknown}`
    )
  })
}
