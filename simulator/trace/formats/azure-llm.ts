import { instantCell, wholeCell } from '../import/csv-cells.ts'
import { readCsv } from '../import/csv-rows.ts'
import type { FileBytes } from '../file-bytes.ts'
import { type Importer, type ImportLog, type ImportOptions, plainTask } from '../import/importer.ts'
import { RecordSorter } from '../import/record-sorter.ts'
import { DEFAULT_SELECTION_SEED } from '../select.ts'
import { dealRequests, type Request } from '../import/server-requests.ts'
import { openSpillFile } from '../import/spill-file.ts'

const COLUMNS = { required: ['arrival_s', 'context_tokens', 'generated_tokens'] } as const
/** The columns of the published files, and of copies with times in seconds. */
const NAMES: Readonly<Record<string, string>> = {
  timestamp: 'arrival_s',
  contexttokens: 'context_tokens',
  generatedtokens: 'generated_tokens',
}
const MAX_TOKENS = 100_000_000

/**
 * Assumptions of Headroom: the throughput of one GPU with a model of about ten billion parameters and many
 * concurrent requests.
 */
const DEFAULT_PREFILL_TOKENS_PER_S = 10_000
const DEFAULT_DECODE_TOKENS_PER_S = 1_000
const DEFAULT_SERVERS = 8
/** A day. */
const DEFAULT_LIFE_MS = 86_400_000

/**
 * Requests to language models (Azure LLM inference traces of 2023 and 2024): the work of servers, as bursts.
 */
export const azureLlm: Importer = {
  format: 'azure-llm',
  licence: 'CC-BY-4.0',
  origin: 'Azure LLM inference trace',
  options: ['servers', 'serverSkew', 'serverLifeMs', 'prefillTokensPerS', 'decodeTokensPerS'],
  about:
    'Requests to language models: CSV, one request a row. They are distributed over ' +
    `\`--servers\` (${DEFAULT_SERVERS}), each a task on one GPU whose work are its ` +
    `requests; \`--server-skew s\` gives the k-th server a share of k^−s (0: round robin). ` +
    `A server lives for \`--server-life\` (24h) and is followed by the next. Work of a ` +
    `request: context ÷ \`--prefill-tokens-per-s\` (10000) + generated ÷ ` +
    `\`--decode-tokens-per-s\` (1000), an assumption of Headroom. The VRAM of a server is ` +
    `unknown: \`--vram-mib\` lets servers share GPUs.`,
  columns: [
    { name: 'TIMESTAMP', isRequired: true, becomes: 'when the work arrives. Also `arrival_s`, in seconds' },
    { name: 'arrival_s', isRequired: false, becomes: 'another name of TIMESTAMP' },
    { name: 'ContextTokens', isRequired: true, becomes: 'work. Also `context_tokens`' },
    { name: 'context_tokens', isRequired: false, becomes: 'another name of ContextTokens' },
    { name: 'GeneratedTokens', isRequired: true, becomes: 'work. Also `generated_tokens`' },
    { name: 'generated_tokens', isRequired: false, becomes: 'another name of GeneratedTokens' },
  ],
  dropped: { no_tokens: 'has neither context nor output tokens' },
  ignored: {},
  adjusted: {
    requests_joined:
      'arrived while its server was busy and was added to the burst before it; no work is lost',
  },
  publicData: [
    {
      name: 'AzureLLMInferenceTrace 2023 (28,000 requests) and 2024 (a week, 44 million)',
      licence: 'CC-BY-4.0',
      where: 'github.com/Azure/AzurePublicDataset',
    },
  ],
  async *read(source, options, log) {
    log.synthesise('vram_mib')
    log.synthesise('activity')
    const sorter = new RecordSorter(() => openSpillFile(options.spillFolder))
    try {
      await sortRequests(source, options, log, sorter)
      const servers = dealRequests(inOrder(sorter), {
        servers: options.servers ?? DEFAULT_SERVERS,
        skew: options.serverSkew ?? 0,
        lifeMs: options.serverLifeMs ?? DEFAULT_LIFE_MS,
        seed: options.seed ?? DEFAULT_SELECTION_SEED,
        onJoined: () => log.adjust('requests_joined'),
      })
      for await (const { id, at, work } of servers) yield plainTask({ id, at, gpus: 1, work }, options)
    } finally {
      await sorter.close()
    }
  },
}

async function sortRequests(
  source: FileBytes,
  options: ImportOptions,
  log: ImportLog,
  sorter: RecordSorter,
): Promise<void> {
  const msPerContext = 1000 / (options.prefillTokensPerS ?? DEFAULT_PREFILL_TOKENS_PER_S)
  const msPerGenerated = 1000 / (options.decodeTokensPerS ?? DEFAULT_DECODE_TOKENS_PER_S)
  const nameOf = (header: string): string => NAMES[header.toLowerCase().replaceAll('_', '')] ?? header
  for await (const row of readCsv(source, COLUMNS, log, { nameOf })) {
    const at = instantCell(row, 'arrival_s', log)
    if (at === null) continue
    const context = wholeCell(row, 'context_tokens', 0, MAX_TOKENS, log)
    const generated = context === null ? null : wholeCell(row, 'generated_tokens', 0, MAX_TOKENS, log)
    if (context === null || generated === null) continue
    if (context + generated === 0) {
      log.drop('no_tokens')
      continue
    }
    const busyMs = Math.max(1, Math.round(context * msPerContext + generated * msPerGenerated))
    const isSpilling = sorter.add({ key: at, tie: row.line, text: String(busyMs) })
    if (isSpilling !== undefined) await isSpilling
  }
}

async function* inOrder(sorter: RecordSorter): AsyncGenerator<Request> {
  for await (const batch of sorter.sorted())
    for (const { key, text } of batch) yield { at: key, busyMs: Number(text) }
}
