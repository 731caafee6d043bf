/**
 * One process of the hunt, with the mutant loaded: judges seeds, or a scenario file, in the order given on
 * stdin (one per line) and reports on stdout, one line each: `seed 7`, then `ok` or `caught RULE`; ends with
 * the first one that is caught.
 */
import { createInterface } from 'node:readline'
import { createOperatorClients } from '../../services/runs/shared-operator-clients.ts'
import { scenarioOf } from '../../simulator/experiment/fuzz/build.ts'
import { drawDocument } from '../../simulator/experiment/fuzz/draw.ts'
import { judge } from '../../simulator/experiment/fuzz/judge.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'

const operatorClients = createOperatorClients()
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`judges ${line}\n`)
  const scenario = /^\d+$/.test(line) ? scenarioOf(drawDocument(Number(line))) : loadScenario(line).scenario
  const { violations } = await judge(scenario, operatorClients.openOperatorClient)
  const [first] = violations
  process.stdout.write(first === undefined ? 'ok\n' : `caught ${first.rule}\n`)
  if (first !== undefined) break
}
process.exit(0)
