import { type Job, markJob } from "../core/jobs/authoring.ts";

const put = (variables: { readonly [name: string]: string | undefined }): void => {
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
};

/** The same job, whose handler finds these variables in `process.env`; they are as before when it has ended. */
export const withEnvironment = (job: Job, environment: { readonly [variable: string]: string }): Job => {
  const handler: unknown = Reflect.get(job.options, "handler");
  if (typeof handler !== "function") return job;
  const wrapped = async (context: unknown): Promise<unknown> => {
    const before = Object.fromEntries(Object.keys(environment).map((name) => [name, process.env[name]]));
    put(environment);
    try {
      return await handler(context);
    } finally {
      put(before);
    }
  };
  return markJob({ ...job.options, handler: wrapped });
};
