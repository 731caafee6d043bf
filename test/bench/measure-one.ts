/**
 * `node --expose-gc measure-one.ts NAME`: the process of one bench. Its readings are printed as one line of
 * JSON.
 */
import { BENCHES } from './benches.ts'

const name = process.argv[2]
const bench = BENCHES.find(({ names }) => names.some((each) => each === name))
if (bench === undefined) throw new Error(`unknown bench: ${String(name)}`)
process.stdout.write(`${JSON.stringify(await bench.measure())}\n`)
