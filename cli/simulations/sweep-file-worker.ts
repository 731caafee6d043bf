/** The process that makes files of sweeps. */
import { serveJobs } from '../workers/serve-jobs.ts'
import { givesWay, NICE_ASKED } from './low-priority.ts'
import { sweepFile } from './sweep-file.ts'

givesWay(NICE_ASKED)
serveJobs(sweepFile)
