-- How many dead letters there are is told from the counts: those from before there were any are counted now.
INSERT INTO counts (what, topic_arn, messages)
SELECT 'buried', topic_arn, missing FROM (
    SELECT topic_arn, sum(letters) AS missing FROM (
        SELECT topic_arn, count(*) AS letters FROM dead_letters GROUP BY topic_arn
        UNION ALL
        SELECT topic_arn, CASE what WHEN 'buried' THEN -messages ELSE messages END FROM counts
    ) AS each GROUP BY topic_arn
) AS topic WHERE missing <> 0
ON CONFLICT (what, topic_arn) DO UPDATE SET messages = counts.messages + excluded.messages;
