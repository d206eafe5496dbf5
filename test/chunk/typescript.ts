import { EventEmitter } from "events";

export type Id = string | number;

/** What a job looks like on the wire. */
export interface Job {
  id: Id;
  name: string;
  run(input: Buffer): Promise<void>;
}

export enum State {
  Idle = "idle",
  Busy = "busy",
  Done = "done",
}

export abstract class Runner<T extends Job> extends EventEmitter {
  private readonly jobs = new Map<Id, T>();
  protected state: State = State.Idle;

  constructor(private readonly limit: number) {
    super();
    this.setMaxListeners(limit);
    this.state = State.Idle;
  }

  abstract prepare(job: T): void;

  /** Runs everything that waits. */
  async runAll(): Promise<number> {
    let n = 0;
    for (const job of this.jobs.values()) {
      await job.run(Buffer.alloc(0));
      n += 1;
    }
    return n;
  }

  private onError = (error: Error): void => {
    this.emit("error", error);
    this.state = State.Done;
  };
}

export namespace Retry {
  export function delay(attempt: number): number {
    const base = 100;
    return base * 2 ** attempt;
  }
}

export const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

export default function create(limit = 10): Runner<Job> {
  const runner = new DefaultRunner(limit);
  runner.on("error", console.error);
  return runner;
}
