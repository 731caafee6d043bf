/**
 * Findings of seeds and incidents are judged like seeds, also by rules that no assertion of a scenario checks
 * (ledger, agreement, order, the wire).
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createOperatorClients } from '../../services/runs/shared-operator-clients.ts'
import { judge } from '../../simulator/experiment/fuzz/judge.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'

const FOLDER = join(import.meta.dirname, '../../scenarios/regressions')
const SUFFIX = '.scenario.yaml'
const NAMES = readdirSync(FOLDER).flatMap((file) =>
  file.endsWith(SUFFIX) ? [file.slice(0, -SUFFIX.length)] : [],
)

const operatorClients = createOperatorClients()
afterAll(() => operatorClients.close())

describe('the judge of fuzz seeds', () => {
  it.each(NAMES)('finds nothing in %s', async (name) => {
    const { violations } = await judge(
      loadScenario(join(FOLDER, `${name}${SUFFIX}`)).scenario,
      operatorClients.openOperatorClient,
    )
    expect(violations, `headroom sim fuzz scenarios/regressions/${name}${SUFFIX}`).toEqual([])
  })
})
