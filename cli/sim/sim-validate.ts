/** `headroom sim validate [FILES…]` and `headroom sim schema`. */
import { parseDocument } from '../../simulator/document/document.ts'
import { scenarioJsonSchema } from '../../simulator/scenario/schema.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import type { LoadedScenario } from '../../simulator/scenario/load.ts'
import { ScenarioError } from '../../simulator/document/problem.ts'
import { refuseIn } from '../../simulator/document/refusal.ts'
import { TraceError } from '../../simulator/trace/trace-error.ts'
import { openTrace } from '../../simulator/trace/trace-file-reader.ts'
import { EXIT_OK, EXIT_USAGE } from '../../services/exit-codes.ts'
import { scenarioFiles } from './scenario-files.ts'

export interface SimValidateOptions {
  readonly json?: boolean
}

/**
 * Reports every problem of every file; exits with 2 when there is one. Runs nothing; reads only the header of
 * a trace.
 */
export async function simValidate(files: readonly string[], { json }: SimValidateOptions): Promise<number> {
  const found: { readonly file: string; readonly error: ScenarioError | null }[] = []
  for (const file of files.length > 0 ? files : scenarioFiles())
    found.push({ file, error: await problemsOf(file) })
  const lines = found.map(({ file, error }) => ({
    file,
    is_valid: error === null,
    problems: error?.problems ?? [],
    unlisted: error?.unlisted ?? 0,
  }))
  process.stdout.write(
    json === true
      ? `${JSON.stringify(lines, null, 2)}\n`
      : found.map(({ file, error }) => `${error?.message ?? `ok        ${file}`}\n`).join(''),
  )
  return found.every(({ error }) => error === null) ? EXIT_OK : EXIT_USAGE
}

export function simSchema(): number {
  process.stdout.write(`${JSON.stringify(scenarioJsonSchema(), null, 2)}\n`)
  return EXIT_OK
}

async function problemsOf(file: string): Promise<ScenarioError | null> {
  try {
    return await traceProblems(loadScenario(file))
  } catch (error) {
    if (error instanceof ScenarioError) return error
    throw error
  }
}

/** Existing but unreadable traces, at the places that name them. */
async function traceProblems({ scenario, text, file }: LoadedScenario): Promise<ScenarioError | null> {
  const { root, problems } = parseDocument(text)
  if (root === null) return null
  const refuse = refuseIn(root, problems)
  for (const [index, item] of scenario.workload.entries()) {
    if (item.kind !== 'trace') continue
    try {
      const trace = await openTrace(item.file)
      trace.close()
    } catch (error) {
      if (!(error instanceof TraceError)) throw error
      refuse(['workload', index, 'trace'], error.message)
    }
  }
  return problems.count === 0 ? null : problems.toError(file)
}
