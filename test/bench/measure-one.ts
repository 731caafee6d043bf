/**
 * `node --expose-gc measure-one.ts NAME`: the process of one bench. Its readings go to stdout as one line of
 * JSON.
 */
import { BENCHES } from './benches.ts'

const name = process.argv[2]
const bench = BENCHES.find(({ names }) => names.some((each) => each === name))
if (bench === undefined) throw new Error(`no bench measures ${String(name)}`)
process.stdout.write(`${JSON.stringify(await bench.measure())}\n`)
